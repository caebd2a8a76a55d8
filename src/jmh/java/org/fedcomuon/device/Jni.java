package org.fedcomuon.device;

import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** The library behind {@link JniCalls}, for the contenders that need it: what one lacks, others can do without. */
@State(Scope.Thread)
public class Jni {
    @Setup
    public void load() {
        JniCalls.load();
    }
}
