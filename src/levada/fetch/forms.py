"""Forms of a page: their fields, and what a browser would send.

A page of a login is looked at in the process that fetches, not in a parser child, so this reads no more than the tags
that forms are made of, by a regular expression that is linear in the page (RE2), and builds no tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import unescape
from typing import Any

import msgspec

from levada.core.patterns import compiled

_MOST_BYTES = 1024 * 1024  # of a page: a form stands at the beginning
_MOST_FIELDS = 500
_NOT_SENT = frozenset({"button", "file", "image", "reset", "unchecked"})
_TAGS = (
    r"(?is:<!--.*?-->|<script\b.*?</script|<style\b.*?</style|<template\b.*?</template"
    r"|<(/?)(form|input|button|select|option|textarea|base)\b((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>)"
)
_ATTRIBUTES = r"([^\s=/\"'>]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+)))?"


class Field(msgspec.Struct, frozen=True):
    name: str
    value: str
    kind: str  # of an input: hidden, text, password ...


class Form(msgspec.Struct):
    """A form, with the values that the page gives its fields."""

    action: str  # as it is written; "": the address of the page
    method: str
    encoding: str
    fields: list[Field]

    def has(self, names: Sequence[str]) -> bool:
        """Whether it has a field for each of these names."""
        own = {field.name for field in self.fields}
        return own.issuperset(names)

    @property
    def asks_password(self) -> bool:
        return any(field.kind == "password" for field in self.fields)

    def filled(self, values: dict[str, str]) -> list[tuple[str, str]]:
        """What is sent with these values: hidden fields as they are, and the first button with a name."""
        sent = []
        pressed = any(field.kind == "submit" and field.name in values for field in self.fields)
        for field in self.fields:
            if field.name in values or field.kind in _NOT_SENT:
                continue
            if field.kind == "submit":
                if pressed:
                    continue
                pressed = True
            sent.append((field.name, field.value))
        return [*sent, *values.items()]


def forms_of(html: bytes) -> tuple[list[Form], str]:
    """The forms of a page in UTF-8, and the address in its `<base>`."""
    forms: list[Form] = []
    base, form, select = "", None, None
    for closing, tag, attributes in _tags(html):
        if tag == "form":
            form = None
            if not closing:
                method, encoding = attributes.get("method", "get").lower(), attributes.get("enctype", "").lower()
                form = Form(attributes.get("action", "").strip(), method, encoding, [])
                forms.append(form)
        elif tag == "base" and not base:
            base = attributes.get("href", "")
        elif form is not None and len(form.fields) < _MOST_FIELDS:
            if tag == "select":
                select = None if closing else attributes.get("name", "")
            elif not closing:
                _add(form, tag, attributes, select)
    return forms, base


def _add(form: Form, tag: str, attributes: dict[str, str], select: str | None) -> None:
    name, value = attributes.get("name", ""), attributes.get("value", "")
    kind = attributes.get("type", "submit" if tag == "button" else "text").lower()
    if tag == "option":
        if not select:
            return
        known = [field for field in form.fields if field.name == select]
        if known and "selected" not in attributes:
            return  # the first one is chosen, unless another says that it is
        form.fields[:] = [field for field in form.fields if field.name != select]
        form.fields.append(Field(select, value, "select"))
        return
    if not name or "disabled" in attributes:
        return
    if kind in ("checkbox", "radio"):
        if "checked" not in attributes:
            form.fields.append(Field(name, "", "unchecked"))
            return
        value = attributes.get("value", "on")
    form.fields.append(Field(name, "" if tag == "textarea" else value, kind))


def _tags(html: bytes) -> Iterator[tuple[bool, str, dict[str, str]]]:
    for found in _all(_TAGS, html[:_MOST_BYTES]):
        if found.group(2) is not None:
            yield bool(found.group(1)), found.group(2).decode().lower(), _attributes(found.group(3))


def _attributes(text: bytes) -> dict[str, str]:
    values: dict[str, str] = {}
    for found in _all(_ATTRIBUTES, text):
        value = next((each for each in found.groups()[1:] if each is not None), b"")
        values.setdefault(found.group(1).decode("utf-8", "replace").lower(), unescape(value.decode("utf-8", "replace")))
    return values


def _all(pattern: str, text: bytes) -> Iterator[Any]:
    return iter(compiled(pattern).finditer(text))
