package org.fedcomuon.cluster;

/** A member of the federation, perhaps in another process, cannot go on; so nobody can. */
public final class MemberFailedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** As another member has heard it. */
    public MemberFailedException(String message) {
        super(message);
    }

    /** Says which, and why. */
    public MemberFailedException(int member, String reason) {
        super("member %d failed: %s".formatted(member, reason));
    }
}
