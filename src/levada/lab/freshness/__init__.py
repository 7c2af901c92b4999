"""Which policy keeps pages freshest? Worlds, histories, measures, and the tables of the EMACrawler paper."""
