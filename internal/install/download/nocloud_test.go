//go:build !cloud

package download

import (
	"strings"
	"testing"

	"dsh/internal/fault"
)

func TestCloudsTakeAnotherBuild(t *testing.T) {
	for _, address := range []string{"s3::https://s3.amazonaws.com/b/k.tgz?aws_access_key_secret=hush", "gcs::https://www.googleapis.com/storage/v1/b/k.tgz"} {
		_, err := fetched(t, Options{}, address)
		if fault.ClassOf(err) != fault.Package || !strings.Contains(err.Error(), "this build cannot fetch") || !strings.Contains(fault.Hint(err), "-tags cloud") {
			t.Errorf("%v (%s)", err, fault.Hint(err))
		}
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
}
