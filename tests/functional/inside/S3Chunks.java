import java.io.ByteArrayInputStream;
import java.io.FilterInputStream;
import java.util.Properties;
import org.jclouds.ContextBuilder;
import org.jclouds.blobstore.BlobStore;
import org.jclouds.blobstore.BlobStoreContext;
import org.jclouds.blobstore.domain.Blob;

/** jclouds in a sandbox, with the placeholder as its key: S3Chunks ENDPOINT KEY SIZE…, each size a body that can be
 *  read only once, which jclouds therefore sends in signed chunks of 64 KiB. One line a size; the bucket is "chunks". */
class S3Chunks {
    static byte[] bytes(int n) {
        byte[] b = new byte[n];
        for (int i = 0; i < n; i++)
            b[i] = (byte) (i * 31 + (i >> 12));
        return b;
    }

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.setProperty("jclouds.s3.virtual-host-buckets", "false");
        p.setProperty("jclouds.max-retries", "0");
        p.setProperty("jclouds.regions", "us-east-1");
        BlobStoreContext context = ContextBuilder.newBuilder("aws-s3").endpoint(args[0]).credentials(args[1], "nothing")
            .overrides(p).buildView(BlobStoreContext.class);
        BlobStore store = context.getBlobStore();
        for (int k = 2; k < args.length; k++) {
            byte[] b = bytes(Integer.parseInt(args[k]));
            try {
                Blob blob = store.blobBuilder(args[k]).payload(new FilterInputStream(new ByteArrayInputStream(b)) { })
                    .contentLength(b.length).build();
                store.putBlob("chunks", blob);
                System.out.println(args[k] + " put");
            } catch (RuntimeException e) {
                System.out.println(args[k] + " " + e);
            }
        }
        context.close();
    }
}
