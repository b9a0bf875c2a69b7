"""What this machine has and lacks for Capstan: facts found by trying, and a judgement on them.

Only the standard library is used, so that it runs before anything is installed.
"""
