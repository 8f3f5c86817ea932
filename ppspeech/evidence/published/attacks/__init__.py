"""What can be found out from the printed protocols by following them and keeping notes."""
