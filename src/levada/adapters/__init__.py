"""One engine per file, behind a port of `levada.ports`; `memory` is the reference."""
