"""Robots over ROS 2: actions, topics and Nav2."""
