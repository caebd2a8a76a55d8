package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.method.Variable;

/**
 * Some elements of a variable, of every client of a device: as much of a mean as is computed at a time. A variable may
 * have more rows than the device has clients; all of them receive the mean.
 *
 * @param posted the number of the variable among those that were posted
 * @param at the first element
 */
record Section(Variable variable, int posted, long at, long count) {
    /** Divides variables into sections of at most so many elements, in order. */
    static List<Section> of(List<Variable> posted, long mostElements) {
        var all = new ArrayList<Section>();
        for (int i = 0; i < posted.size(); i++) {
            long length = posted.get(i).length();
            for (long at = 0; at < length; at += mostElements) {
                all.add(new Section(posted.get(i), i, at, Math.min(mostElements, length - at)));
            }
        }
        return all;
    }

    /** Returns how many elements the longest of these sections has. */
    static long longest(List<Section> sections) {
        return sections.stream().mapToLong(Section::count).max().orElse(0);
    }

    /** Returns the number of rows of a variable. */
    static int rows(Variable variable) {
        return Math.toIntExact(variable.buffer().length() / variable.length());
    }

    /** Returns all rows. */
    Batch all() {
        return variable.buffer().batch(rows(variable), variable.length()).slice(at, count);
    }

    /** Returns {@code size} elements of the first row, from element {@code from} of this section. */
    Batch first(long from, long size) {
        return ofFirst(variable.buffer(), at + from, size);
    }

    static Batch ofFirst(Buffer values, long from, long size) {
        return new Batch(values, from, 1, size, size);
    }

    /** Returns every row as a vector of its own. */
    List<Batch> each() {
        Batch rows = all();
        var each = new ArrayList<Batch>();
        for (int k = 0; k < rows.clients(); k++) {
            each.add(rows.client(k));
        }
        return each;
    }

    /** Copies the first row to all others. */
    void spread(Device device) {
        Batch rows = all();
        long others = rows.clients() - 1;
        if (others > 0) {
            Buffer values = variable.buffer();
            device.ema(
                    1,
                    new Batch(values, at, others, count, others == 1 ? variable.length() : 0),
                    rows.neighbours(1, others));
        }
    }
}
