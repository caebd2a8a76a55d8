package org.fedcomuon.cluster;

/** A member of the federation, perhaps in another process, has failed; so the run fails. */
public final class MemberFailedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Creates one with a message from another member. */
    public MemberFailedException(String message) {
        super(message);
    }

    /** Creates one that names the member and the reason. */
    public MemberFailedException(int member, String reason) {
        super("member %d failed: %s".formatted(member, reason));
    }
}
