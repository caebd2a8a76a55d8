package org.fedcomuon.experiment;

import java.io.FilterReader;
import java.io.IOException;
import java.io.StringReader;

/**
 * A reader that never splits a surrogate pair between two reads: the YAML library would look for the second half beyond
 * the end of its buffer.
 */
final class SurrogateSafeReader extends FilterReader {
    SurrogateSafeReader(String text) {
        super(new StringReader(text));
    }

    @Override
    public int read(char[] into, int offset, int length) throws IOException {
        int count = super.read(into, offset, Math.max(1, length - 1));
        if (count > 0 && count < length && Character.isHighSurrogate(into[offset + count - 1])) {
            int next = super.read();
            if (next >= 0) {
                into[offset + count] = (char) next;
                count++;
            }
        }
        return count;
    }
}
