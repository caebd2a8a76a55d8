package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class GpuSupportTest {
    private final List<String> warnings = new ArrayList<>();

    @Test
    void aGpuWithoutALibtorchForItIsToldOnceWithWhatToAdd() {
        var support = new GpuSupport(() -> false, warnings::add);
        assertThat(support.computesOn("cuda:1")).isFalse();
        assertThat(support.computesOn("cuda:0")).isFalse();
        assertThat(warnings).singleElement().asString().startsWith("cuda:1: ").contains("linux-x86_64-gpu");
        assertThat(warnings.getFirst()).doesNotContain("\n");
    }

    @Test
    void otherwiseThereIsNothingToTell() {
        var with = new GpuSupport(() -> true, warnings::add);
        assertThat(with.computesOn("cuda:0")).isTrue();
        var without = new GpuSupport(() -> false, warnings::add);
        assertThat(without.computesOn("cpu:0")).isFalse();
        assertThat(without.computesOn("cudasim:0")).isFalse();
        assertThat(with.computesOn("cudasim:0")).isFalse();
        assertThat(warnings).isEmpty();
    }
}
