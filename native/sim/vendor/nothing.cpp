// A library that only has to be there.
