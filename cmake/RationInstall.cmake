# Filled in with the public library.
