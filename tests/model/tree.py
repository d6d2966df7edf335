"""Files and directories below one directory."""
import copy


class Tree:
    def __init__(self, top="/workspace"):
        self.top = top
        self.dirs = {top}
        self.files = {}  # path -> [bytes, mode]

    def copy(self):
        return copy.deepcopy(self)

    @staticmethod
    def parents(path):
        parts = path.split("/")
        return ["/".join(parts[:i]) for i in range(3, len(parts))]  # "/workspace" has index 2

    def blocked(self, path):
        """Is something on the way to it a file?"""
        return any(p in self.files for p in self.parents(path))

    def below(self, path):
        return [p for p in list(self.files) + list(self.dirs) if p.startswith(path + "/")]

    def kind(self, path):
        return "file" if path in self.files else "directory" if path in self.dirs else None

    def children(self, path):
        """{name: (kind, size or None, mode or None)}"""
        found = {}
        for p in self.below(path):
            name = p[len(path) + 1:]
            if "/" not in name:
                f = self.files.get(p)
                found[name] = ("file", len(f[0]), f[1]) if f else ("directory", None, None)
        return found

    def make(self, path):
        self.dirs.update(self.parents(path) + [path])

    def write(self, path, data, mode="0644"):
        """-> done?"""
        if path in self.dirs or self.blocked(path):
            return False
        self.dirs.update(self.parents(path))
        self.files[path] = [data, self.files[path][1] if path in self.files else mode]
        return True

    def remove(self, path, recursive):
        """-> done?"""
        if path in self.files:
            del self.files[path]
            return True
        if path not in self.dirs or path == self.top or (self.below(path) and not recursive):
            return False
        for p in self.below(path) + [path]:
            self.files.pop(p, None)
            self.dirs.discard(p)
        return True
