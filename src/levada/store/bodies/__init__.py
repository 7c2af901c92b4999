"""Texts and bodies outside of the database: references in rows, frames as objects in a folder or a bucket."""

from levada.store.bodies.bodies import Bodies
from levada.store.bodies.references import MARK, Reference, reference_to, unpacked_reference

__all__ = ["MARK", "Bodies", "Reference", "reference_to", "unpacked_reference"]
