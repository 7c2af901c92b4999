"""`levada plugins`."""

from __future__ import annotations

from levada.cli.options import JsonOption, print_json
from levada.cli.terminal import printer
from levada.core.words import harmless


def plugins(json: JsonOption = False) -> None:
    """Lists the plug-ins of every extension point, and where each comes from.

    Each is imported once. One that cannot be used is shown with the reason; the exit status is still 0.

    Examples:

    ```
    levada plugins
    levada plugins --json
    ```
    """
    from levada.core.plugins import GROUPS, installed

    found = list(installed())
    if json:
        print_json({"plugins": found})
        return
    out = printer()
    for group, place in GROUPS.items():
        out.print(f"{group}  ({place.setting})", style="bold")
        rows = [each for each in found if each.group == group]
        for each in rows:
            trouble = f": {each.trouble}" if each.trouble else ""
            out.print(f"  {harmless(each.name):<22} {harmless(each.source + trouble)}", soft_wrap=True)
        if not rows:
            out.print("  none")
