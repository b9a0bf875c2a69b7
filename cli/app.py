"""The command group, and the one place that turns an error into a line and an exit code."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

import click

from capstan_client.errors import CapstanError
from cli.console import error_text, fail
from cli.overview import SECTIONS
from controller.process.ignored_exceptions import on_ignored
from plain.reading import did_you_mean
from protocol.version import VERSION

COMMANDS: Final[dict[str, str]] = {
    "demo": "cli.commands.run",
    "run": "cli.commands.run",
    "show": "cli.commands.show",
    "lab": "cli.commands.lab",
    "exec": "cli.commands.lab",
    "scheme": "cli.commands.lab",
    "link": "cli.commands.link",
    "capton": "cli.commands.capton",
    "page": "cli.commands.page",
    "serve": "cli.commands.serve",
    "agent": "cli.commands.serve",
    "work": "cli.commands.work",
    "submit": "cli.commands.submit",
    "check": "cli.commands.describe",
    "schemes": "cli.commands.describe",
    "simulate": "cli.commands.simulate",
    "agree": "cli.commands.agree",
    "evidence": "cli.commands.evidence",
    "report": "cli.commands.report",
    "model": "cli.commands.model",
    "bench": "cli.commands.bench",
    "lab-check": "cli.commands.lab_check",
    "doctor": "cli.commands.doctor",
    "test": "cli.commands.test",
    "clean": "cli.commands.clean",
}
"""Module of each command: read only when the command is used, so that --help is quick."""


_ROOT: Final = Path(__file__).resolve().parents[1]


class Commands(click.Group):
    """Finds commands by name in `COMMANDS`, and says what was meant when there is none.

    The wheel of what simulates (setup/simulator) has the modules of some.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, module in COMMANDS.items() if find_spec(module) is not None]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        here = self.list_commands(ctx)
        for title, summaries in SECTIONS.items():
            if rows := [(name, summary) for name, summary in summaries.items() if name in here]:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            ctx.fail(f"command {cmd_name!r} is not known{did_you_mean(cmd_name, COMMANDS)}")
        if find_spec(COMMANDS[cmd_name]) is None:
            here = ", ".join(self.list_commands(ctx))
            ctx.fail(f"{cmd_name!r} is not in this installation, which has {here}: use a checkout of Capstan")
        command: click.Command = getattr(
            importlib.import_module(COMMANDS[cmd_name]), f"{cmd_name.replace('-', '_')}_command"
        )
        return command


def _first_command() -> str:
    """Return what to begin with: a wheel has no demo."""
    return "./capstan demo" if find_spec(COMMANDS["demo"]) is not None else "capstan page"


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"Start with:  {_first_command()}    (COMMAND --help says more)\n\n"
    "Exit codes: 0 done; 1 failed; 2 wrong usage (an unknown option or name); "
    "130, 143 ended by a signal.",
)
@click.version_option(package_name=None, version=VERSION, prog_name="capstan")
def capstan() -> None:
    """Make a data-centre fabric finish flows sooner: an SDN controller on OpenFlow, and its lab."""


_AGAIN_S: Final = 0.1


class Ended(SystemExit):
    """A signal that asks to end: on its way out, everything that was made is taken down."""

    def __str__(self) -> str:
        return f"ended by {signal.Signals(int(str(self.code)) - 128).name}"


def _end(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # asking twice must not cut the clean-up short
    raise Ended(128 + number)


def _end_again(ignored: KeyboardInterrupt | Ended) -> None:
    """Have the signal sent again whose exception Python ignored."""
    number = int(str(ignored.code)) - 128 if isinstance(ignored, Ended) else signal.SIGINT
    if isinstance(ignored, Ended):
        signal.signal(number, _end)
    again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def main() -> None:
    """Run the command line; every expected error becomes one clear line on standard error."""
    with on_ignored(Ended, _end_again), on_ignored(KeyboardInterrupt, _end_again):
        _main()


def _main() -> None:
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # a file on Windows takes some hundred letters, and no box lines
        sys.stdout.reconfigure(errors="backslashreplace")
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as nohup does
            signal.signal(number, _end)
    try:
        capstan(prog_name="capstan", standalone_mode=False)
        sys.stdout.flush()  # the reader may be gone, and at exit it is too late to keep quiet about it
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except click.UsageError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        fail(error.format_message(), code=error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        fail("interrupted", code=130)
    except Ended as ended:
        fail(str(ended), code=int(str(ended.code)))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except ModuleNotFoundError as error:
        _explain(error, f"{error}; Capstan's own start sets its environment up: {_ROOT / 'capstan'}")
    except ImportError as error:
        _explain(error, str(error))
    except (CapstanError, ValueError, OSError, RuntimeError) as error:
        _explain(error, error_text(error))


def _explain(error: Exception, text: str) -> NoReturn:
    """Print one line, or the whole traceback for those who look for a fault in Capstan."""
    if os.environ.get("CAPSTAN_TRACEBACK"):
        raise error
    fail(text)
