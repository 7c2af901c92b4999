"""The command line: one module per command."""

__all__ = ["main"]


def main() -> None:
    from levada.cli.root import main as run

    run()
