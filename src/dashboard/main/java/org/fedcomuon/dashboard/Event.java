package org.fedcomuon.dashboard;

/**
 * A message to browsers in the format of server-sent events. Its bytes are those of all browsers, and never change.
 *
 * @param number by which a browser that reconnects names the last event it has received
 * @param isLast whether no event follows
 */
@SuppressWarnings("ArrayRecordComponent") // they are never compared
record Event(long number, byte[] bytes, boolean isLast) {}
