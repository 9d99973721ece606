"""What the library is measured against, itself included."""
