"""The door for pages: the frames of a session inside WebSocket messages, and the few files that a page is made of."""
