"""Threads that run an asyncio event loop, and the ways into them from other threads."""
