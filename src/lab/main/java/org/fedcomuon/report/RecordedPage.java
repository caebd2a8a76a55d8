package org.fedcomuon.report;

import java.nio.file.Path;
import java.util.List;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.federation.RunRecorder;

/** The page that every recorded run leaves. Immutable. */
public final class RecordedPage implements RunRecorder.Page {
    /** Used by {@link java.util.ServiceLoader}. */
    public RecordedPage() {}

    @Override
    public String html(Path directory) {
        return TrainPage.html(List.of(RunRecord.read(directory)));
    }
}
