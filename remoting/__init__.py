"""The wire: RocketMQ's remoting protocol, shared by broker, consumer and console. No Django in here."""
