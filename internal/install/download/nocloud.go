//go:build !cloud

package download

import (
	"context"
	"net/url"

	"dsh/internal/fault"
)

// fromCloud refuses: what the storage of clouds takes would make this program
// several times as large.
func fromCloud(_ context.Context, _ Options, forced string, _ *url.URL, _ string) error {
	return fault.WithHint(fault.Errorf(fault.Package, "this build cannot fetch addresses that begin with %q", forced+"::"),
		"go build -tags cloud ./cmd/dsh makes one that can")
}
