"""What the black-box tests share: the protocol spoken by hand, the server as a process, and the world
around both. Written against docs/protocol.md alone, so that the server is checked by a second reading
of the contract. Python's standard library only, and python3-cryptography for certificates."""
