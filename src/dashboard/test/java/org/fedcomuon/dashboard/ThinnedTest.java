package org.fedcomuon.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A whole course in bounded room. */
class ThinnedTest {
    /** From the first to the last that it stands for. */
    private record Range(int from, int to) {
        Range join(Range later) {
            assertThat(later.from).isEqualTo(to + 1);
            return new Range(from, later.to);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 7, 8})
    void leavesNothingOutHoweverLong(int most) {
        var thinned = new Thinned<Range>(most, Range::join);
        for (int i = 0; i < 1000; i++) {
            thinned.add(new Range(i, i));
            var all = new ArrayList<>(thinned.all());
            thinned.open().ifPresent(all::add);
            assertThat(all).hasSizeLessThanOrEqualTo(most);
            assertThat(all.stream().reduce(Range::join)).contains(new Range(0, i));
        }
    }

    @Test
    void saysWhatIsNewUntilOldOnesChange() {
        var thinned = new Thinned<Integer>(4, (a, b) -> a);
        IntStream.range(0, 2).forEach(thinned::add);
        thinned.take();
        thinned.add(2);
        assertThat(thinned.fresh()).contains(List.of(2));
        thinned.take();
        assertThat(thinned.fresh()).contains(List.of());
        thinned.add(3);
        assertThat(thinned.fresh()).isEmpty();
        assertThat(thinned.all()).containsExactly(0, 2);
        thinned.take();
        thinned.add(4);
        assertThat(thinned.fresh()).contains(List.of());
        assertThat(thinned.open()).contains(4);
    }
}
