"""Packages are installed under a policy of ours, and the machine's own policy is as before then."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
POLICY = "/usr/sbin/policy-rc.d"
APT = f"""#!/bin/sh
case " $* " in *" install "*)
    {POLICY} some-service start
    echo "asked $?" >> "$SEEN" ;;
esac
"""
IN_A_MACHINE = f"""
mount -t tmpfs tmpfs /usr/sbin || exit 77
mount -t tmpfs -o noexec tmpfs "$TMPDIR" || exit 77
[ -z "$MODE" ] || {{ printf '#!/bin/sh\\nexit %s\\n' "$ANSWER" > {POLICY} && chmod "$MODE" {POLICY}; }}
"$1" some-package >&2
echo "left $(stat -c %a {POLICY} 2>/dev/null) $(tail -n 1 {POLICY} 2>/dev/null)"
"""


@pytest.mark.parametrize(
    ("mode", "answer", "left"),
    [
        ("", "", "left"),
        ("755", "0", "left 755 exit 0"),
        ("755", "101", "left 755 exit 101"),
        ("644", "0", "left 644 exit 0"),  # Debian's packages ask it nothing
    ],
)
def test_no_service_starts_and_the_machines_own_policy_stays(
    mode: str, answer: str, left: str, tmp_path: Path
) -> None:
    programs, seen, temporary = tmp_path / "bin", tmp_path / "seen", tmp_path / "temporary"
    programs.mkdir()
    temporary.mkdir()
    for name, text in (("apt-get", APT), ("apt-cache", "#!/bin/sh\n"), ("dpkg", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    alone = ["unshare", "--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])]
    done = subprocess.run(
        [*alone, "sh", "-c", IN_A_MACHINE, "machine", str(ROOT / "setup" / "install-packages")],
        env={
            "PATH": f"{programs}:/usr/bin:/bin",
            "SEEN": str(seen),
            "MODE": mode,
            "ANSWER": answer,
            "TMPDIR": str(temporary),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if os.geteuid() and done.returncode in (1, 77):
        pytest.skip("users may make no namespaces here")
    assert done.stdout.strip() == left, done.stderr
    assert seen.read_text() == "asked 101\n", done.stderr
