"""What the public functions and transports share."""
