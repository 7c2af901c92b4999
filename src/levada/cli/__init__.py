"""The command line: one module per command."""

__all__ = ["main"]


def main() -> None:
    try:
        from levada.cli.app import main as run

        run()
    except KeyboardInterrupt:  # while the first modules are read: nothing has begun
        raise SystemExit(130) from None
