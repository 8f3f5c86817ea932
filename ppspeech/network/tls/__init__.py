"""Who is at the other end: TLS 1.3, certificates, and connections made with them."""
