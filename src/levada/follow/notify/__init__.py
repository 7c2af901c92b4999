"""Notifications: subscriptions are told of changes by mail, Apprise, webhook or plug-in."""
