"""The bundled web: sites that change at known rates, and a hostile corner."""
