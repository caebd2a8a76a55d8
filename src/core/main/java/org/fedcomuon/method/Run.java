package org.fedcomuon.method;

/** Clients of a device that take part and are neighbours, so that one call serves them. */
record Run(int first, int count) {}
