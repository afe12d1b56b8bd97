"""What any RocketMQ client needs: connections, routes, heartbeats, a producer, admin calls."""
