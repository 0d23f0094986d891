package check

// The codes. What they are given for is promised to scripts and editors.
const (
	// Layers as texts.
	Syntax     Code = "syntax"       // a text that is not one document of the dialect
	NotPatches Code = "not-patches"  // a document that is no list of patches
	Unreadable Code = "unreadable"   // a file that cannot be read
	PathLeaves Code = "path-escapes" // a path of a bundle that leaves its package

	// Rows.
	DuplicateID    Code = "duplicate-id"      // two rows side by side have one id, and mounting stops
	RepeatedID     Code = "repeated-id"       // rows in different groups have one id, and patches find one of them
	PluginTwice    Code = "plugin-twice"      // two bundles insert the same plugin
	LayersOverlap  Code = "layers-overlap"    // two layers have several ids in common
	RowWithoutName Code = "row-without-name"  // a row that names no plugin
	RowNotMapping  Code = "row-not-a-mapping" // a row that is no mapping
	RowTooLarge    Code = "row-too-large"     // a row left out for what its aliases come to
	UnusableID     Code = "unusable-id"       // an id that is no text or number, or empty
	DisabledValue  Code = "disabled-value"    // disabled is neither true, false nor an expression

	// Patches.
	TargetMissing  Code = "target-missing"   // no row has the id
	NotAGroup      Code = "not-a-group"      // rows for a row that is no group
	NameMismatch   Code = "name-mismatch"    // the row is of another plugin
	PatchWithoutID Code = "patch-without-id" // neither insert nor id
	DetachedRow    Code = "detached-row"     // the row is no longer in the tree
	UnknownShape   Code = "unknown-shape"    // a key that patches of other tools have
	UnknownKey     Code = "unknown-key"      // a key that the loader does not know
	KeysIgnored    Code = "keys-ignored"     // keys beside insert

	// Expressions.
	ExpressionSyntax     Code = "expression-syntax"     // JavaScript refuses it
	ExpressionStatements Code = "expression-statements" // statements, and no expression
	ExpressionReadsTree  Code = "expression-reads-tree" // it depends on the order of rows
	ExpressionUntagged   Code = "expression-untagged"   // a text that looks like an expression

	// Configs.
	ConfigInvalid    Code = "config-invalid"     // it breaks the plugin's schema
	KeysDropped      Code = "keys-dropped"       // an override left out keys of the layers below
	CopiedKeyChanged Code = "copied-key-changed" // a key copied from below has another value there now
	RelativePath     Code = "relative-path"      // a path that is not absolute after composing
	PathIsDshFolder  Code = "path-is-dsh-folder" // a project's path that means its .dsh folder

	// Bundles of a profile.
	BundleTwice    Code = "bundle-twice"          // listed twice
	BundleMissing  Code = "bundle-missing"        // listed and not installed
	BundleNoLayer  Code = "bundle-no-layer"       // listed and no bundle
	BundleBroken   Code = "bundle-broken"         // its package cannot be read
	BundleRefused  Code = "bundle-refused"        // the harness does not fit its peers
	BundleDisabled Code = "bundle-disabled"       // switched off
	FileMissing    Code = "patch-file-missing"    // a patch file that is not there
	FileNotPacked  Code = "patch-file-not-packed" // a patch file that npm would leave out
	ByteOrderMark  Code = "byte-order-mark"       // a package.json that begins with one
	Untrusted      Code = "project-untrusted"     // the layer of a project that is not trusted
)
