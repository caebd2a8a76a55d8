package org.fedcomuon.experiment;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import org.fedcomuon.data.ExampleSet;
import org.fedcomuon.data.LabelledDataset;

/** Data that are drawn from a seed and identified by what they are drawn with. */
final class SyntheticData {
    private SyntheticData() {}

    /** Returns a data set. */
    static LabelledDataset of(ExampleSet train, ExampleSet test, String description, List<Object> drawnWith) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256")
                    .digest(drawnWith.toString().getBytes(StandardCharsets.UTF_8));
            return new LabelledDataset(train, test, description, HexFormat.of().formatHex(hash));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
