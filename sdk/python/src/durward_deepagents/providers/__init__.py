"""Sandboxes of hosted systems that reach Durward's proxy and nothing else, as providers of Deep Agents
Code: dcode --sandbox durward-modal and so on. A module for each, which wants that system's own
package. What all of them do is in durward_deepagents.providers.base."""
