// Package installation is where in-box bundles come from, the ones embedded in
// this program or those of a directory with the Node.js harness, and how a
// package directory is read without leaving it.
//
// It is not the installer, and it does not say what a bundle contains: it hands
// out package manifests and files as they are.
package installation
