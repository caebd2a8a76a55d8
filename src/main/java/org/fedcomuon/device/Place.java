package org.fedcomuon.device;

/**
 * Where in a batch something is: client, block (a matrix of the client) and element, each -1 where it does not apply.
 */
public record Place(long client, long block, long index) {}
