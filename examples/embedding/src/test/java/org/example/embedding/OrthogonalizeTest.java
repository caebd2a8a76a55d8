package org.example.embedding;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class OrthogonalizeTest {
    @Test
    void theRowsAreOrthonormal() {
        float[] o = Orthogonalize.nearest(2, 3, 3, 1, 0, 1, 2, 0);
        assertEquals(1, o[0] * o[0] + o[1] * o[1] + o[2] * o[2], 1e-5);
        assertEquals(1, o[3] * o[3] + o[4] * o[4] + o[5] * o[5], 1e-5);
        assertEquals(0, o[0] * o[3] + o[1] * o[4] + o[2] * o[5], 1e-5);
        assertEquals(0, o[1] - o[3], 1e-5); // the polar factor of a symmetric matrix is symmetric
    }
}
