// JSch as programs use it: commands and files. Its environment is that of main.go. Says "ok".
import com.jcraft.jsch.ChannelExec;
import com.jcraft.jsch.ChannelSftp;
import com.jcraft.jsch.JSch;
import com.jcraft.jsch.Session;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.Arrays;

public class Jsch {
    static String env(String name) {
        return System.getenv(name) == null ? "" : System.getenv(name);
    }

    static void check(boolean good, String what) {
        if (!good)
            throw new IllegalStateException(what);
    }

    static int run(Session s, String command, byte[] input, ByteArrayOutputStream to) throws Exception {
        ChannelExec e = (ChannelExec) s.openChannel("exec");
        e.setCommand(command);
        e.setInputStream(input == null ? null : new ByteArrayInputStream(input));
        InputStream out = e.getInputStream();
        e.connect(15000);
        to.write(out.readAllBytes());
        while (!e.isClosed())
            Thread.sleep(5);
        e.disconnect();
        return e.getExitStatus();
    }

    static void files(Session s) throws Exception {
        ChannelSftp f = (ChannelSftp) s.openChannel("sftp");
        f.connect(15000);
        byte[] data = new byte[1500000];
        Arrays.fill(data, (byte) 'j');
        String at = env("SSH_UP") + "/jsch";
        f.put(new ByteArrayInputStream(data), at);
        check(f.stat(at).getSize() == data.length, "size");
        check(Arrays.equals(f.get(at).readAllBytes(), data), "what was written is read");
        f.rename(at, at + "2");
        f.rm(at + "2");
        f.cd(env("SSH_READ"));
        check(f.ls(".").size() > 0, "list");
        f.disconnect();
    }

    public static void main(String[] args) throws Exception {
        JSch j = new JSch();
        j.setKnownHosts(env("SSH_KNOWN"));
        if (!env("SSH_KEY").isEmpty())
            j.addIdentity(env("SSH_KEY"));
        Session s = j.getSession(env("SSH_USER"), env("SSH_HOST"), Integer.parseInt(env("SSH_PORT")));
        s.setConfig("StrictHostKeyChecking", "yes");
        s.setServerAliveInterval(1000);
        s.connect(15000);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        check(run(s, "echo hello world", null, out) == 0 && out.toString().equals("hello world\n"), "echo: " + out);
        check(run(s, "exit 7", null, out) == 7, "exit status");
        out.reset();
        check(run(s, "wc -c", new byte[3000000], out) == 0 && out.toString().trim().equals("3000000"), "standard input");
        out.reset();
        check(run(s, "head -c 3000000 /dev/zero", null, out) == 0 && out.size() == 3000000, "standard output");
        if (env("SSH_REFUSED").equals("1"))
            check(run(s, "id", null, out) == 128, "a command of no rule");
        files(s);
        s.disconnect();
        System.out.println("ok");
    }
}
