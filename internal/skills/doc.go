// Package skills finds the skills of the plugin
// @deepseek-ai/dsh-skill-filesystem: which folders are searched, which files in
// them are skills, and which of two with one name counts.
//
// It is not the reader of Agent Plugins, whose rules for skills are stricter: see
// package agentplugin.
package skills
