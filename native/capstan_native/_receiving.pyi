"""What has arrived: feedback."""

class Feedback:
    """What a peer says of our datagrams; *body*: of a FEEDBACK datagram. ValueError: it is none."""

    def __init__(self, body: bytes) -> None: ...
    @property
    def numbers(self) -> list[int]:
        """Of each receipt; in `stamps` its path's stamp (0: none), in `delays_us` its delay."""
    @property
    def stamps(self) -> list[int]: ...
    @property
    def delays_us(self) -> list[int]: ...
    @property
    def lost(self) -> list[tuple[int, int]]:
        """First numbers and counts of what the peer has given up."""
    @property
    def recovered(self) -> int:
        """Packets rebuilt from repairs."""
