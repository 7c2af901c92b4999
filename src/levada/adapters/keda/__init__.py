"""KEDA asks over gRPC how many workers there should be, and is told what the controller wants."""

from levada.adapters.keda.server import KedaServer
from levada.adapters.keda.wishes import KedaWishes

__all__ = ["KedaServer", "KedaWishes"]
