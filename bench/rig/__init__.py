"""What bench/proxies is made of: an origin, the peers, a load generator in C, the measures, the page."""
