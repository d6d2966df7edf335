// JGit over Apache MINA's SSH: clone, push, fetch, and a push that is refused. Its environment is that of main.go, and
// SSH_REPO, a repository there, and SSH_ECDSA, a key. Says "ok".
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import org.eclipse.jgit.api.Git;
import org.eclipse.jgit.transport.PushResult;
import org.eclipse.jgit.transport.RefSpec;
import org.eclipse.jgit.transport.RemoteRefUpdate;
import org.eclipse.jgit.transport.SshSessionFactory;
import org.eclipse.jgit.transport.sshd.SshdSessionFactoryBuilder;

public class Jgit {
    static String env(String name) {
        return System.getenv(name) == null ? "" : System.getenv(name);
    }

    static RemoteRefUpdate push(Git git, String ref) throws Exception {
        for (PushResult r : git.push().setRemote("origin").setRefSpecs(new RefSpec("HEAD:" + ref)).call())
            for (RemoteRefUpdate u : r.getRemoteUpdates())
                return u;
        throw new IllegalStateException("nothing was pushed");
    }

    static void check(boolean good, String what) {
        if (!good)
            throw new IllegalStateException(what);
    }

    public static void main(String[] args) throws Exception {
        Path home = Files.createTempDirectory("home"), ssh = Files.createDirectory(home.resolve(".ssh"));
        Files.copy(Path.of(env("SSH_KNOWN")), ssh.resolve("known_hosts"));
        if (!env("SSH_ECDSA").isEmpty()) // without another library it knows no Ed25519
            Files.copy(Path.of(env("SSH_ECDSA")), ssh.resolve("id_ecdsa"));
        SshSessionFactory.setInstance(new SshdSessionFactoryBuilder().setPreferredAuthentications("publickey,keyboard-interactive,password")
            .setHomeDirectory(home.toFile()).setSshDirectory(ssh.toFile()).build(null));
        File at = Files.createTempDirectory("clone").toFile();
        String url = "ssh://" + env("SSH_USER") + "@" + env("SSH_HOST") + ":" + env("SSH_PORT") + env("SSH_REPO");
        try (Git git = Git.cloneRepository().setURI(url).setDirectory(at).call()) {
            byte[] big = new byte[500000];
            new java.util.Random(1).nextBytes(big);
            Files.write(at.toPath().resolve("big"), big);
            git.add().addFilepattern("big").call();
            git.commit().setMessage("by JGit").setSign(false).setAuthor("T", "t@example.com").setCommitter("T", "t@example.com").call();
            RemoteRefUpdate u = push(git, "refs/heads/agent/jgit");
            check(u.getStatus() == RemoteRefUpdate.Status.OK, "push: " + u);
            git.fetch().call();
            check(git.getRepository().resolve("refs/remotes/origin/agent/jgit") != null, "fetch");
            u = push(git, "refs/heads/jgit");
            if (env("SSH_REFUSED").equals("1"))
                check(u.getStatus() == RemoteRefUpdate.Status.REJECTED_OTHER_REASON && u.getMessage().contains("durward"), "refused: " + u);
            else
                check(u.getStatus() == RemoteRefUpdate.Status.OK, "push: " + u);
        }
        System.out.println("ok");
        System.exit(0);
    }
}
