"""How much do all exchanges together hold in memory, and who must give way?"""

from __future__ import annotations

__all__ = ["SharedBuffer"]


class SharedBuffer:
    """Counts the bytes of all bodies under way against one cap.

    Over the cap only an exchange that holds more than its fair share (cap / exchanges) gives way: many large bodies
    cannot fill the memory, and they cannot push a small page out. At most twice the cap is ever held.
    """

    def __init__(self, max_bytes: int, exchanges: int) -> None:
        self._max_bytes = max_bytes
        self._fair_share = max_bytes // exchanges
        self.held = 0

    def admits(self, more: int, own: int) -> bool:
        """Take `more` bytes for an exchange that then holds `own`; False: it must give way, nothing was taken."""
        if self.held + more > self._max_bytes and own > self._fair_share:
            return False
        self.held += more
        return True

    def release(self, held: int) -> None:
        self.held -= held
