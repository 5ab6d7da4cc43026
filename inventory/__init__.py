"""What exists: subnets, servers, HCAs, ports and manager hosts, and how servers introduce themselves."""
