import type { Page } from 'playwright-core'

type Text = { text: string; color: string; backgrounds: string[] }

/** What a reader sees on which ground, from the element outwards. A string: DOM types are not Node's. */
const VISIBLE_TEXT = `
  [...document.querySelectorAll('body *')]
    .filter((element) => element.checkVisibility({ visibilityProperty: true }))
    .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .map((element) => {
      const backgrounds = []
      for (let at = element; at; at = at.parentElement) backgrounds.push(getComputedStyle(at).backgroundColor)
      return { text: element.textContent.slice(0, 40), color: getComputedStyle(element).color, backgrounds }
    })`

/** The texts on a page that have less contrast than WCAG AA asks of text of any size, 4.5:1. */
export const lowContrastTexts = async (page: Page): Promise<string[]> => {
  const texts = await page.evaluate<Text[]>(VISIBLE_TEXT)
  if (texts.length === 0) throw new Error('The page shows no text')
  return texts.flatMap(({ text, color, backgrounds }) => {
    const ground = backgrounds.find((background) => channels(background)[3] !== 0) ?? 'rgb(255, 255, 255)'
    const ratio = contrast(color, ground)
    return ratio < 4.5 ? [`${text}: ${color} on ${ground} is ${ratio.toFixed(2)}`] : []
  })
}

const contrast = (one: string, other: string): number => {
  const [dark = 0, bright = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (bright + 0.05) / (dark + 0.05)
}

/** WCAG 2.2, relative luminance */
const luminance = (color: string): number => {
  const [r = 0, g = 0, b = 0] = channels(color).map((channel) => {
    const c = channel / 255
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

/** `rgb(…)` or `rgba(…)`, which is how computed styles name the colours of the style sheets. */
const channels = (color: string): number[] => {
  const numbers = color.match(/^rgba?\(([^)]+)\)$/)?.[1]?.split(/[\s,/]+/)
  if (!numbers) throw new Error(`Cannot read the colour ${color}`)
  return numbers.map(Number)
}
