"""Robots over MQTT."""
