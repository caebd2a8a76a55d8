package org.fedcomuon.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

class MpiLibraryTest {
    @Test
    void mpichIsRecognizedAndRefused() {
        assertThat(MpiLibrary.objection(Map.of("PMI_SIZE", "2", "PMI_RANK", "0")))
                .hasValueSatisfying(
                        reason -> assertThat(reason).contains("MPICH").contains("apt-get install openmpi-bin"));
    }

    @Test
    void openMpiIsWelcomeEvenWhereItSpeaksPmi() {
        assertThat(MpiLibrary.objection(Map.of("OMPI_COMM_WORLD_SIZE", "2", "PMI_SIZE", "2")))
                .isEmpty();
    }

    @Test
    void aProcessOfItsOwnIsToldHowToStart() {
        assertThat(MpiLibrary.objection(Map.of()))
                .hasValueSatisfying(reason -> assertThat(reason).contains("mpirun -np N"));
    }
}
