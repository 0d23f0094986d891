// Package npmtest is an npm registry for tests: it serves package versions that are written as txtar archives in a directory.
// It is not a model of our own installer: it imports none of our packages, so that it can judge them.
//
// # Archives
//
// Each package version is one file, NAME_VERSION.txtar, where the slash of a scoped name is written as a plus sign:
//
//	is-odd_3.0.1.txtar
//	@acme+hello_1.0.0.txtar
//
// The files of the archive are the files of the package; package.json is required, and its name and version must be those of the file name.
// The comment at the top of the archive holds directives, one a line. Empty lines and lines that start with # are prose; a line that is neither is an error.
//
//	tag: latest next        the dist-tags that point at this version
//	deprecated: text        the version is deprecated
//	time: RFC3339           when it was published; else one day after the version before it
//	integrity: wrong        the sha512 and the shasum of the version document are those of other content
//	shasum-only             the version document has a shasum and no integrity
//	corrupt                 the gzip stream is damaged; integrity and shasum are those of the damaged bytes
//	truncated               the second half of the gzip stream is missing; integrity and shasum are those of the first half
//	prefix: NAME            the folder inside the tarball, else package
//	evil: KIND              a malicious entry is added to the tarball: one of the Evil constants
//	status: CODE [TIMES]    a request for the tarball gets this status (the first TIMES requests, else all)
//	drop-after: N [TIMES]   the connection is closed after N bytes of the tarball (the first TIMES requests, else all)
//	hang                    a request for the tarball is never answered
//	packument-status: CODE  a request for the package's document gets this status
//	token: SECRET           every document and tarball of the package needs this bearer token
//	signature: KIND         the registry's signature over the version, where it signs: one of the Signature constants, else good
//
// The tag latest belongs to the version that asks for it, else to the highest version that is not a prerelease, else to the highest of all.
//
// # Paths
//
//	/NAME                          all versions; abbreviated where the Accept header asks for it
//	/NAME/VERSION, /NAME/TAG       one version
//	/NAME/-/BASE-VERSION.tgz       a tarball
//	/-/package/NAME/dist-tags      the dist-tags
//	/-/ping                        an empty object
//	/-/v1/search?text=WORDS&size=N packages that have one of the words in their name, description or keywords, those with more of them first
//	/-/npm/v1/security/advisories/bulk  (POST) what the file advisories/bulk.json has of the packages in the question, of any version
//	/osv/v1/querybatch             (POST) the ids of the OSV documents advisories/osv/ID.json about each package, of any version, one a page
//	/osv/v1/vulns/ID               such a document
//	/-/npm/v1/keys                 the keys that versions are signed with, where the server signs
//	/files/ARCHIVE.tgz             the tarball of ARCHIVE.txtar in the directory or in its folder files, whose packages no document mentions
//	/public/PATH                   a file of the directory that Publish names, as a plain web server has it
//	/redirect/PATH                 a redirect to /PATH
//
// # Faults
//
// A server that misbehaves in a way that no archive describes is made with Spoil and one of the functions that give a Fault.
package npmtest
